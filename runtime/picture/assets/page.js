/* The page of one plan, which is in it. */

startLoom();
showPicture(JSON.parse(byId("data").textContent));
