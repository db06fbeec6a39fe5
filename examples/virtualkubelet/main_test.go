package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePlay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, play(t.Context(), &out))
		text := out.String()
		last := -1
		for _, line := range []string{
			"web Pending ready=0/1 restarts=0\n", "web Running ready=1/1 restarts=1 ip=", "kubectl delete pod web\n",
			"web Failed ready=0/1 restarts=1 ip=", "gone: true\n",
		} {
			at := strings.Index(text, line)
			assert.Greater(t, at, last, "%q is not where it belongs in\n%s", line, text)
			last = at
		}
	})
}
