module burn

go 1.21
