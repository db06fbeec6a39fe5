package manifest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

const (
	manifestLimit = 3 << 19
	podHead       = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n"
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

// The cost is measured in bytes allocated, which do not depend on the machine's load.
func TestTheCostOfAManifestIsBounded(t *testing.T) {
	const full = manifestLimit
	nine := strings.Repeat("*b,", 9)
	for name, tc := range map[string]struct{ manifest, want string }{
		"empty containers": {filled(600_000, podHead+"  containers:\n", "  - {}\n", ""), "has more than 100000 values"},
		"one list":         {filled(320_000, podHead+"  containers:\n  - name: c\n    image: i\n    env:\n", "    - {name: E%d, value: v}\n", ""), "spec.containers[0].env: Too many:"},
		"one map":          {filled(150_000, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels:\n", "    l%d: x\n", "spec: {containers: [{name: c, image: i}]}\n"), "metadata.labels: Too many:"},
		"invalid items":    {filled(20_000, podHead+"  containers:\n", "  - {}\n", ""), " more"},
		"unknown fields":   {filled(20_000, podHead, "  x%d: 1\n", ""), `unknown field "spec.x0"`},
		"duplicate keys":   {filled(100_000, podHead, "  x: 1\n", ""), `line 6: key "x" already set in map`},
		"documents":        {filled(full, "", "---\n{}\n", ""), "documents; one pod per file"},
		"JSON list":        {filled(full, `{"apiVersion":"v1","kind":"Pod","spec":{"x":[`, "1,", "1]}}"), "has more than 100000 values"},
		"JSON depth":       {`{"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}", "is nested more than 100 levels deep"},
		"YAML depth":       {podHead + "  x: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "is nested more than 100 levels deep"},
		"nested aliases":   {podHead + "  a: &a [x,x,x,x,x,x,x,x,x]\n  b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n  c: &c [" + nine + "]\n  d: &d [" + strings.ReplaceAll(nine, "b", "c") + "]\n  e: &e [" + strings.ReplaceAll(nine, "b", "d") + "]\n", "document contains excessive aliasing"},
		"long alias":       {podHead + "  a: &a " + strings.Repeat("x", full/2) + "\n  b: [" + strings.Repeat("*a,", 10_000) + "]\n", "has more than 1572864 bytes once its aliases are expanded"},
		"wrong type":       {filled(100_000, podHead+"  containers:\n", "  - {name: c%d, image: v}\n", "  - {name: 1}\n"), "].name: Invalid value: \"1\""},
		"long value":       {podHead + "  containers: [{name: c, image: \" " + strings.Repeat("x", full-1000) + "\"}]\n", `containers[0].image: Invalid value: " xxx`},
	} {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, len(tc.manifest), full)
			var err error
			n := allocated(func() { _, err = manifest.Static([]byte(tc.manifest), "node", "file:/x", manifest.StaticOptions{}) })
			require.ErrorContains(t, err, tc.want)
			assert.Less(t, len(err.Error()), 8<<10, "the error is bounded")
			assert.Less(t, n, uint64(512<<20), "bytes allocated")
			t.Logf("%d bytes of manifest, %d KiB allocated", len(tc.manifest), n>>10)
		})
	}
}

func TestAManifestOfAFewHundredKilobytesIsTaken(t *testing.T) {
	text := filled(300<<10, podHead+"  containers:\n  - name: c\n    image: i\n    env:\n", "    - {name: E%d, value: a123456789012345678901234567890123456789}\n", "")
	pod, err := manifest.Static([]byte(text), "node", "file:/x", manifest.StaticOptions{})
	require.NoError(t, err)
	assert.Greater(t, len(pod.Spec.Containers[0].Env), 4000)
}
