"""Plans out of plans: one after the other, or a part of one."""
