package runtimetest

var logPromises = []promise{}
