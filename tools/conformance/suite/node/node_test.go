// Package node is Kubernetes' node conformance suite: the tests that any node has to pass.
package node

import (
	"testing"

	_ "k8s.io/kubernetes/test/e2e/node" // the tests

	"github.com/kubeparts/kubeparts/tools/conformance/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestNode(t *testing.T) { suite.Run(t, "Node conformance") }
