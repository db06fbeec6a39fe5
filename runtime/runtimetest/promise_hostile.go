package runtimetest

var hostilePromises = []promise{}
