package images

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestImageNames(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for in, want := range map[string]string{ // img-1; "" is an error
		"nginx":                  "nginx:latest",
		"nginx:1.27":             "nginx:1.27",
		"host":                   "host:latest",
		"localhost:5000/a":       "localhost:5000/a:latest",
		"localhost:5000/a:1":     "localhost:5000/a:1",
		"nginx" + digest:         "nginx" + digest,
		"nginx:1.27" + digest:    "nginx:1.27" + digest,
		"":                       "",
		"Nginx":                  "",
		"nginx:":                 "",
		"a b":                    "",
		digest[len("@sha256:"):]: "",
	} {
		got, err := withTag(in)
		assert.Equal(t, want, got, in)
		assert.Equal(t, want == "", err != nil, in)
	}
}
