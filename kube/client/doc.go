// Package client speaks to a Kubernetes API server for a node agent.
package client

import _ "k8s.io/client-go/kubernetes" // so that go.mod keeps it until the first user
