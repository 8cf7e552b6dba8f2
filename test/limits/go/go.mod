module vx/test/limits

go 1.25
