package conformance_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/docs"
	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/internal/conformance"
)

var update = flag.Bool("update", false, "record the responses of a kube-apiserver, or write docs/apitest.md")

const (
	scenarioFiles = "testdata/scenarios/*.txt"
	differences   = "testdata/differences.txt"
	document      = "apitest.md" // in docs
)

func scenarios(t *testing.T) []*conformance.Scenario {
	t.Helper()
	files, err := filepath.Glob(scenarioFiles)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []*conformance.Scenario
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := conformance.Parse(strings.TrimSuffix(filepath.Base(file), ".txt"), string(data))
		require.NoError(t, err)
		all = append(all, s)
	}
	return all
}

// TestServer compares apitest with the recorded responses.
func TestServer(t *testing.T) {
	all := scenarios(t)
	var found []conformance.Difference
	calls := 0
	for _, s := range all {
		calls += len(s.Calls)
		synctest.Test(t, func(t *testing.T) {
			api := &apitest.Server{RequireNamespaces: true}
			target := conformance.Target{URL: "http://apitest", Transport: api, Compact: func() error { api.Compact(); return nil }}
			got, err := target.Run(t.Context(), s)
			if err != nil {
				t.Log(err)
			}
			found = append(found, conformance.Compare(s, got)...)
		})
	}
	assert.GreaterOrEqual(t, calls, 300, "requests")

	text, err := os.ReadFile(differences)
	require.NoError(t, err)
	rules, err := conformance.ParseRules(string(text))
	require.NoError(t, err)
	reasons, stale := conformance.Explain(rules, found)
	for i, d := range found {
		if reasons[i] == "" {
			t.Errorf("not listed in %s:\n%v", differences, d)
		}
	}
	for _, rule := range stale {
		t.Errorf("listed in %s, and does not exist: %v", differences, rule)
	}
	want := conformance.Report(all, found, reasons)
	if *update {
		require.NoError(t, os.WriteFile("../../../../docs/"+document, []byte(want), 0o644))
		return
	}
	got, err := docs.Files.ReadFile(document)
	require.NoError(t, err)
	assert.Equal(t, want, string(got), "docs/apitest.md is outdated: go test ./kube/apitest/internal/conformance -run TestServer -update")
}

// TestIntegrationCluster compares a kube-apiserver with the recorded responses, or records
// them.
func TestIntegrationCluster(t *testing.T) {
	plane := lab.NewControlPlane(t, lab.ControlPlaneConfig{
		Bare: true, Controllers: []string{"namespace-controller", "garbage-collector-controller"},
		// LimitRanges have no cache: a watch that is too old for the store is too old for the server.
		APIServer: []string{"--etcd-compaction-interval=0", "--watch-cache-sizes=limitranges#0"},
	})
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	require.NoError(t, err)
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	target := conformance.Target{URL: plane.URL, Transport: transport, Strict: true, Compact: func() error { return compact(plane.Etcd) }}

	// Scenarios that affect others run alone, after them.
	all := scenarios(t)
	slices.SortStableFunc(all, func(a, b *conformance.Scenario) int {
		return cmp.Compare(exclusive(a), exclusive(b))
	})
	var running sync.WaitGroup
	for _, s := range all {
		if exclusive(s) > 0 {
			running.Wait()
		}
		running.Go(func() {
			got, err := target.Run(t.Context(), s)
			if !assert.NoError(t, err) {
				return
			}
			if *update {
				for i, call := range s.Calls {
					call.Answer = got[i]
				}
				text, err := conformance.Format(s)
				if assert.NoError(t, err) {
					assert.NoError(t, os.WriteFile(strings.Replace(scenarioFiles, "*", s.Name, 1), []byte(text), 0o644))
				}
				return
			}
			for _, d := range conformance.Compare(s, got) {
				t.Errorf("kube-apiserver differs from the recorded response: %v", d)
			}
		})
	}
	running.Wait()
}

// exclusive returns 1 for the scenarios that affect others: those that compact, and those that
// define resources, because the garbage collector pauses until it watches them.
func exclusive(s *conformance.Scenario) int {
	for _, call := range s.Calls {
		if call.Compacts() || call.Method == http.MethodPost && strings.HasSuffix(call.Path, "/customresourcedefinitions") {
			return 1
		}
	}
	return 0
}

// compact deletes the history of an etcd.
func compact(url string) error {
	var status struct {
		Header struct{ Revision string }
	}
	post := func(path, body string, into any) error {
		res, err := http.Post(url+path, "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("etcd: POST %s: %s", path, res.Status)
		}
		return json.NewDecoder(res.Body).Decode(into)
	}
	if err := post("/v3/maintenance/status", "{}", &status); err != nil {
		return err
	}
	return post("/v3/kv/compaction", fmt.Sprintf(`{"revision":%q,"physical":true}`, status.Header.Revision), &struct{}{})
}
