package bounded_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/kube/internal/bounded"
)

func TestTextsAreBounded(t *testing.T) {
	assert.Equal(t, "short", bounded.Text("short", 200))
	assert.Equal(t, "cut ?", bounded.Text("cut \xff", 200))
	long := bounded.Text("begin"+strings.Repeat("é", 1000)+"end", 201)
	assert.LessOrEqual(t, len(long), 201)
	assert.True(t, utf8.ValidString(long))
	assert.True(t, strings.HasPrefix(long, "begin") && strings.HasSuffix(long, "end"), long)
	assert.Contains(t, long, "(2008 bytes in all)")
}

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
		assert.Equal(t, want, bounded.Client(addr), addr)
	}
}

func TestALogLineIsBounded(t *testing.T) {
	var out bytes.Buffer
	long := strings.Repeat("x", 1<<20)
	log := slog.New(bounded.Handler(slog.NewTextHandler(&out, nil))).With("with", long).WithGroup("g")
	log.Info(long, "string", long, "err", errors.New(long), "struct", struct{ Field string }{long}, slog.Group("group", "in", long), "short", "value", "n", 3)
	assert.Less(t, out.Len(), 16<<10)
	assert.Contains(t, out.String(), "g.short=value g.n=3")
	assert.Contains(t, out.String(), "1048576 bytes in all")
}
