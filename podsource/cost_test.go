package podsource_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podsource"
)

// filled returns head, as many formatted lines as fit into size bytes, and tail. Each
// line has its number.
func filled(size int, head, line, tail string) string {
	var b strings.Builder
	b.WriteString(head)
	for i := 0; b.Len() < size-len(tail)-64; i++ {
		if strings.Contains(line, "%d") {
			fmt.Fprintf(&b, line, i)
		} else {
			b.WriteString(line)
		}
	}
	return b.String() + tail
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestAnOversizedManifestIsRefusedUnreadAndNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.yaml")
	require.NoError(t, os.WriteFile(path, []byte(filled(10<<20, "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n", "  - {name: c%d, image: i}\n", "")), 0o600))
	files, err := podsource.NewFile(podsource.FileConfig{Path: filepath.Dir(path), NodeName: "node", Settle: -1})
	require.NoError(t, err)
	n := allocated(func() { _, err = files.Read() })
	require.NoError(t, err)
	assert.Less(t, n, uint64(1<<20), "bytes allocated")
	require.Len(t, files.Problems(), 1)
	assert.ErrorContains(t, files.Problems()[0].Err, "podsource: "+path+": has 10485")
	assert.ErrorContains(t, files.Problems()[0].Err, "bytes; the limit is 1572864")
}

// The cost is measured in bytes allocated, which do not depend on the machine's load.
func TestTheCostOfAListIsBounded(t *testing.T) {
	list := `{"apiVersion":"v1","kind":"PodList","items":[`
	for name, tc := range map[string]struct{ body, want string }{
		"YAML":          {filled(2<<20, "apiVersion: v1\nkind: PodList\nitems:\n", "- {metadata: {name: p%d}}\n", ""), "at most 1572864 are allowed"},
		"empty pods":    {filled(3_200_000, list, "{},", "{}]}"), "has more than 1000000 values"},
		"many pods":     {filled(200_000, list, "{},", "{}]}"), "items: Too many: 66"},
		"large pod":     {filled(2<<20, list+`{"a":"`, "xxxxxxxxxxxxxxxx", `"}]}`), "items[0]: has 20970"},
		"intricate":     {filled(1<<20, list+`{"a":[`, "1,", "1]}]}"), "items[0]: has more than 100000 values"},
		"unusable":      {filled(20_000, list, `{"x":1},`, "{}]}"), ""},
		"nothing but [": {list + strings.Repeat("[", 100_000), "exceeded max depth"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tc.body) }))
			defer server.Close()
			source, err := podsource.NewURL(podsource.URLConfig{URL: server.URL, NodeName: "node"})
			require.NoError(t, err)
			n := allocated(func() { _, err = source.Read(context.Background()) })
			if tc.want == "" {
				require.NoError(t, err, "pods that cannot be used harm no others")
				assert.NotEmpty(t, source.Problems())
			} else {
				require.ErrorContains(t, err, tc.want)
				require.ErrorContains(t, err, server.URL)
			}
			assert.Less(t, n, uint64(256<<20), "bytes allocated")
			t.Logf("%d bytes, %d KiB allocated", len(tc.body), n>>10)
		})
	}
}

// The cost of a set with one changed pod must not depend on the size of the others.
func TestPodsThatASourcePassesAgainAreNotCopied(t *testing.T) {
	var pods []*v1.Pod
	for i := range 200 {
		pods = append(pods, pod(fmt.Sprint(i), func(p *v1.Pod) {
			p.Spec.Containers = []v1.Container{{Name: "c", Image: "1", Env: make([]v1.EnvVar, 200)}}
		}))
	}
	var cost uint64
	done := make(chan struct{})
	source := podsource.Func(func(ctx context.Context, set func([]*v1.Pod)) error {
		set(pods)
		next := slices.Clone(pods)
		next[7] = pod("7", image("2"))
		cost = allocated(func() { set(next) })
		close(done)
		<-ctx.Done()
		return nil
	})
	var sink journal
	startMerge(t, podsource.MergeConfig{Sources: map[string]podsource.PodSource{"mine": source}, Sink: &sink})
	<-done
	sink.mu.Lock()
	defer sink.mu.Unlock()
	assert.Equal(t, "update mine/7", sink.lines[len(sink.lines)-1])
	assert.Less(t, cost, uint64(500<<10), "bytes allocated; the pods have 2 MiB")
}
