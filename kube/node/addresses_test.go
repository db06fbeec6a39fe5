package node_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/node"
)

// silentDNS is the network of a machine whose DNS servers do not answer.
type silentDNS struct{}

func (silentDNS) Lookup(ctx context.Context, _ string) ([]net.IP, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silentDNS) Interfaces() ([]net.IP, error) { return []net.IP{net.IPv4(10, 0, 0, 7)}, nil }

func (silentDNS) Default(net.IP) (net.IP, error) { return net.IPv4(10, 0, 0, 7), nil }

// A node is registered within the time limit of a call, 10 s.
func TestDNSThatDoesNotAnswerDelaysTheAddressesOfANodeByTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		started := time.Now()
		addresses, err := node.AddressConfig{NodeName: "one", Network: silentDNS{}}.Addresses(ctx)
		require.NoError(t, err)
		assert.Equal(t, []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.0.7"}, {Type: v1.NodeHostName, Address: "one"}}, addresses)
		assert.Equal(t, 2*time.Second, time.Since(started))
	})
}
