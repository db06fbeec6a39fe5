package logs_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/logs"
)

func TestTextsAreBounded(t *testing.T) {
	assert.Equal(t, "short", logs.Text("short", 200))
	assert.Equal(t, "cut ?", logs.Text("cut \xff", 200))
	long := logs.Text("begin"+strings.Repeat("é", 1000)+"end", 201)
	assert.LessOrEqual(t, len(long), 201)
	assert.True(t, utf8.ValidString(long))
	assert.True(t, strings.HasPrefix(long, "begin") && strings.HasSuffix(long, "end"), long)
	assert.Contains(t, long, "(2008 bytes in all)")
}

func TestALogLineIsBounded(t *testing.T) {
	var out bytes.Buffer
	long := strings.Repeat("x", 1<<20)
	log := slog.New(logs.Bounded(slog.NewTextHandler(&out, nil))).With("with", long).WithGroup("g")
	log.Info(long, "string", long, "err", errors.New(long), "struct", struct{ Field string }{long}, slog.Group("group", "in", long), "short", "value", "n", 3)
	assert.Less(t, out.Len(), 16<<10)
	assert.Contains(t, out.String(), "g.short=value g.n=3")
	assert.Contains(t, out.String(), "1048576 bytes in all")
}
