// Package dra is Kubernetes' suite of tests of dynamic resource allocation in clusters.
package dra

import (
	"testing"

	_ "k8s.io/kubernetes/test/e2e/dra" // the tests

	"github.com/kubeparts/kubeparts/tools/conformance/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestDRA(t *testing.T) { suite.Run(t, "Dynamic resource allocation") }
