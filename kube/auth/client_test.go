package auth_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/kube/auth"
)

func TestAClientIsAHost(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1:80":             "192.0.2.1",
		"[::ffff:192.0.2.1]:80":    "192.0.2.1",
		"[2001:db8:1:2:3::4]:80":   "2001:db8:1:2::/64",
		"[2001:db8:1:2:f::9]:1234": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":        "fe80::/64",
		"192.0.2.1":                "192.0.2.1",
		"@":                        "@",
		"":                         "",
	} {
		assert.Equal(t, want, auth.ClientKey(addr), addr)
	}
}
