package cri

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheNextRestartCountFromLogs(t *testing.T) {
	for files, want := range map[string]int32{ // rt-75, rt-76
		"":                               0,
		"0.log":                          1,
		"0.log 1.log 10.log 2.log":       11,
		"3.log.20260101-000000":          4,
		"3.log.20260101-000000.gz":       4,
		"3.logs x.log .log 3log -1.log":  0,
		"99999999999999999999.log 1.log": 2,
		"2147483646.log":                 2147483647,
		"1.log.tmp 7.txt":                2,
	} {
		assert.Equal(t, want, nextLog(strings.Fields(files)), "%q", files)
	}
}

func TestLinkNames(t *testing.T) {
	assert.Equal(t, "web_prod_shop-c1.log", linkName("web", "prod", "shop", "c1"))
	long := linkName(strings.Repeat("p", 253), "prod", "shop", "c1")
	assert.Len(t, long, 255) // rt-86
	assert.Equal(t, strings.Repeat("p", 251)+".log", long)
}
