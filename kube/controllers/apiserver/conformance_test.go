package apiserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/controllers/apiserver"
	"github.com/kubeparts/kubeparts/kube/internal/conformance"
)

// TestConformance sends the requests that kube/apitest is compared with, and expects the
// responses of kube-apiserver, except for the differences in testdata/differences.txt.
func TestConformance(t *testing.T) {
	files, err := filepath.Glob("../../apitest/internal/conformance/testdata/scenarios/*.txt")
	require.NoError(t, err)
	var found []conformance.Difference
	calls, differ := 0, map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := conformance.Parse(strings.TrimSuffix(filepath.Base(file), ".txt"), string(data))
		require.NoError(t, err)
		calls += len(s.Calls)
		synctest.Test(t, func(t *testing.T) {
			api := &apitest.Server{RequireNamespaces: true}
			stop, err := apiserver.Start(t.Context(), api, apiserver.Config{})
			require.NoError(t, err)
			defer stop()
			target := conformance.Target{URL: "http://apitest", Transport: api, Compact: func() error { api.Compact(); return nil }}
			got, err := target.Run(t.Context(), s)
			if err != nil {
				t.Log(err)
			}
			found = append(found, conformance.Compare(s, got)...)
		})
	}
	text, err := os.ReadFile("testdata/differences.txt")
	require.NoError(t, err)
	rules, err := conformance.ParseRules(string(text))
	require.NoError(t, err)
	reasons, stale := conformance.Explain(rules, found)
	for i, d := range found {
		differ[d.Scenario+"/"+d.Call] = true
		if reasons[i] == "" {
			t.Errorf("not listed in testdata/differences.txt:\n%v", d)
		}
	}
	for _, rule := range stale {
		t.Errorf("listed in testdata/differences.txt, and does not exist: %v", rule)
	}
	t.Logf("%d requests, %d responses differ, in %d fields", calls, len(differ), len(found))
	assert.GreaterOrEqual(t, calls, 300, "requests")
}
