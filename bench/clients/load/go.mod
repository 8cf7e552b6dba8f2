module vx.bench/load

go 1.25.0

require golang.org/x/net v0.50.0

require golang.org/x/text v0.34.0 // indirect
