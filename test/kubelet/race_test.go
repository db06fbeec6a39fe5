//go:build race

package kubelet

// raceFlags build the kubelet as the tests were built.
var raceFlags = []string{"-race"}
