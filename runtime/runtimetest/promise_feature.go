package runtimetest

var featurePromises = []promise{}
