package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A violation of promtool check metrics is permitted where a kubelet has that name.
// All of our own names pass.
func TestOnlyNamesOfAKubeletBreakTheRulesOfNames(t *testing.T) {
	w := newWorld(t).known().live(t)
	all := facts(t)
	for path := range w.Handlers(w.sources) {
		problems, err := promlint.New(strings.NewReader(w.scrape(t, path))).Lint()
		require.NoError(t, err)
		for _, p := range problems {
			_, listed := all[path+" "+p.Metric]
			assert.True(t, listed, "%s at %s: %s", p.Metric, path, p.Text)
		}
	}
}
