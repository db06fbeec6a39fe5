// Package cluster is the part of Kubernetes' conformance suite that needs a cluster of several nodes with Services
// and DNS.
package cluster

import (
	"testing"

	_ "k8s.io/kubernetes/test/e2e/apps"    // the tests
	_ "k8s.io/kubernetes/test/e2e/network" // the tests

	"github.com/kubeparts/kubeparts/tools/conformance/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestCluster(t *testing.T) { suite.Run(t, "Clusters") }
