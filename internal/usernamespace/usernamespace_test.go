package usernamespace_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/usernamespace"
)

func TestInside(t *testing.T) {
	for mapping, want := range map[string]bool{
		"         0          0 4294967295\n":                                   false,
		"         0       1000          1\n":                                   true,
		"         0       1000          1\n         1     100000      65536\n": true,
		"": true, // no ID is mapped yet
	} {
		assert.Equal(t, want, usernamespace.Inside(fstest.MapFS{"proc/self/uid_map": {Data: []byte(mapping)}}), "%q", mapping)
	}
	assert.False(t, usernamespace.Inside(fstest.MapFS{}), "not Linux")
}

func TestDeniesSetgroups(t *testing.T) {
	for value, want := range map[string]bool{"deny\n": true, "allow\n": false, "": false} {
		assert.Equal(t, want, usernamespace.DeniesSetgroups(fstest.MapFS{"proc/self/setgroups": {Data: []byte(value)}}), "%q", value)
	}
	assert.False(t, usernamespace.DeniesSetgroups(fstest.MapFS{}), "not Linux")
}
