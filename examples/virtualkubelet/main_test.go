package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPodCrashesRestartsAndIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out))
		last := -1
		for _, line := range []string{
			"web Running ready=1/1 restarts=0", "web Running ready=1/1 restarts=1", "kubectl delete pod web\n", "web Failed ready=0/1 restarts=1",
		} {
			at := strings.Index(out.String(), line)
			assert.Greater(t, at, last, "%q in\n%s", line, out.String())
			last = at
		}
	})
}
