module example.org/pluginhost

go 1.16
