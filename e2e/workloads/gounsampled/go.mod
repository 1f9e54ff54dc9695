module example.org/gounsampled

go 1.16
