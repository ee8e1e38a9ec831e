"""One rank of several: join the others."""

from weightloom.runtime.loading.ranks import need_group

if __name__ == "__main__":
    need_group()
