//go:build !race

package kubelet

var raceFlags []string
