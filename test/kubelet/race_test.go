//go:build race

package kubelet

// raceFlags build the kubelet as the tests were built.
var raceFlags = []string{"-race"}

// floodMemory is the permitted memory in KiB for 10,000 connections. The race detector
// multiplies it by about 8: 112 to 132 MiB were measured, and 13 without it.
const floodMemory = 256 << 10
