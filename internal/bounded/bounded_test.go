package bounded_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/bounded"
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
