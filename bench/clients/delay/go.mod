module vx.example/bench/delay

go 1.24
