package agent

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestThePrimaryAddressIsOneThatOtherMachinesReach(t *testing.T) {
	addrs := func(all ...string) (out []net.Addr) {
		for _, text := range all {
			out = append(out, &net.IPNet{IP: net.ParseIP(text), Mask: net.CIDRMask(24, 32)})
		}
		return out
	}
	assert.Equal(t, []string{"192.0.2.7"}, primaryIP(addrs("127.0.0.1", "::1", "169.254.1.1", "fe80::1", "192.0.2.7", "198.51.100.1")))
	assert.Equal(t, []string{"127.0.0.1"}, primaryIP(addrs("::1", "127.0.0.1", "fe80::1")))
	assert.Empty(t, primaryIP(append(addrs("::1"), &net.UnixAddr{})))
	assert.Len(t, InterfaceIPs(), 1)
}
