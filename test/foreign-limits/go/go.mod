module vx/test/foreign-limits

go 1.25
