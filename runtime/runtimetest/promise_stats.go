package runtimetest

var statsPromises = []promise{}
