package device

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// dev-3, dev-5: which of several plugins of a resource is used, and what it offers.
func TestWhichPluginIsUsed(t *testing.T) {
	tests := map[string]struct {
		events  string // "+a": a registers, "a=12": it reports two devices, "-a": it ends
		used    string
		listed  bool
		healthy string // the devices that can be allocated
	}{
		"none":                               {"", "", false, ""},
		"one, before its report":             {"+a", "a", false, ""},
		"one":                                {"+a a=12", "a", true, "12"},
		"one without devices":                {"+a a=", "a", true, ""},
		"it ends":                            {"+a a=12 -a", "", false, ""},
		"it returns":                         {"+a a=12 -a +a", "a", false, ""},
		"a newer one, before its report":     {"+a a=12 +b", "a", true, "12"},
		"a newer one":                        {"+a a=12 +b b=3", "b", true, "3"},
		"the older one reports":              {"+a a=12 +b b=3 a=4", "b", true, "3"},
		"the older one ends":                 {"+a a=12 +b b=3 -a", "b", true, "3"},
		"the newer one ends":                 {"+a a=12 +b b=3 -b", "a", true, "12"},
		"... after reports of the older one": {"+a a=12 +b b=3 a=4 -b", "a", true, "4"},
		"the older one ends too early":       {"+a a=12 +b -a", "b", false, "12"},
		"the newer one ends at once":         {"+a a=12 +b -b", "a", true, "12"},
		"both end":                           {"+a a=12 +b b=3 -a -b", "", false, ""},
		"one that is gone reports":           {"+a a=12 -a a=3", "", false, ""},
		"the middle one of three":            {"+a a=1 +b b=2 +c c=3 -c", "b", true, "2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			r := l.of("example.com/widget")
			plugins := map[string]*plugin{}
			for _, e := range strings.Fields(tt.events) {
				switch id, devices, reported := strings.Cut(e, "="); {
				case reported:
					var list []Device
					for _, d := range devices {
						list = append(list, Device{ID: string(d), Healthy: true})
					}
					r.report(plugins[id], list)
					assert.False(t, r.report(plugins[id], list), "the same again")
				case e[0] == '+':
					plugins[e[1:]] = &plugin{endpoint: e[1:]}
					r.add(plugins[e[1:]])
				default:
					assert.True(t, r.remove(plugins[e[1:]], time.Unix(1, 0)))
					assert.False(t, r.remove(plugins[e[1:]], time.Unix(2, 0)), "a second time")
				}
			}
			used := ""
			if r.plugin != nil {
				used = r.plugin.endpoint
			}
			assert.Equal(t, tt.used, used)
			assert.Equal(t, tt.listed, r.listed)
			assert.Equal(t, tt.healthy, strings.Join(slices.Sorted(maps.Keys(l.free("example.com/widget"))), ""))
			assert.Equal(t, strings.Contains(tt.events, "-") && len(r.plugins) == 0, r.plugin == nil && !r.since.IsZero())
		})
	}
}
