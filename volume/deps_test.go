package volume_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/deptest"
)

// k8s.io/mount-utils brings a few packages, node affinity one.
func TestImports(t *testing.T) {
	deptest.Closure{Package: "volume", Max: 300, Module: []string{"internal/podspec", "internal/runonce", "internal/untrusted", "runtime"}}.Check(t)
}

// What is for tests may know of tests, and nothing else of ours.
func TestImportsOfTheTestPackage(t *testing.T) {
	deptest.Closure{Package: "volume/volumetest", Max: 300, Module: []string{"internal/podspec", "internal/runonce", "internal/untrusted", "runtime", "volume"}, Allow: []string{"testing"}}.Check(t)
}
