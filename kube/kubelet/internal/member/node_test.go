package member

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestProvidedIPs(t *testing.T) {
	assert.Empty(t, providedIPs(nil))
	assert.Equal(t, "10.0.0.1,fd00::1", providedIPs([]net.IP{net.ParseIP("10.0.0.1"), net.ParseIP("fd00::1")}))
}
