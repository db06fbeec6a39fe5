//go:build unix

package footprint

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMemoryInUseIsAttributedToTheFunctionsOfThisRepository(t *testing.T) {
	own := make([]uintptr, 32)
	own = own[:func() int { return runtime.Callers(1, own) }()] // a closure of this test
	record := func(stack []uintptr, bytes, objects int64) runtime.MemProfileRecord {
		r := runtime.MemProfileRecord{AllocBytes: bytes + 1<<20, FreeBytes: 1 << 20, AllocObjects: objects + 7, FreeObjects: 7}
		copy(r.Stack0[:], stack)
		return r
	}
	records := []runtime.MemProfileRecord{
		record(own, 64<<10, 1), record(own, 64<<10, 1),
		record(own[len(own)-1:], 32<<10, 1), // runtime.goexit only
		record(own, 0, 0),                   // freed
	}
	const rate = 4 << 10 // objects of 64 KiB are all sampled
	sites := liveSites(records, rate)
	for i := range sites {
		sites[i].bytes, sites[i].objects = float64(int(sites[i].bytes+0.5)), float64(int(sites[i].objects+0.5))
	}
	assert.Equal(t, []site{
		{"test/footprint.TestMemoryInUseIsAttributedToTheFunctionsOfThisRepository", 128 << 10, 2},
		{"runtime", 32779, 1},
	}, sites)

	// One of few small objects stands for many.
	small := liveSites([]runtime.MemProfileRecord{record(own, 64, 1)}, rate)
	assert.InEpsilon(t, 64, small[0].objects, 0.01)
	assert.InEpsilon(t, 4096, small[0].bytes, 0.01)
}

func TestThePackageOfAFunction(t *testing.T) {
	for function, want := range map[string]string{
		"encoding/json.(*decodeState).object": "encoding/json",
		"k8s.io/api/core/v1.init.0":           "k8s.io/api/core/v1",
		"gopkg.in/yaml%2ev3.unmarshal":        "gopkg.in/yaml%2ev3",
		"main.main":                           "main",
		"":                                    "",
		"google.golang.org/grpc/internal/transport.NewX.f.2": "google.golang.org/grpc/internal/transport",
	} {
		assert.Equal(t, want, packageOf(function), function)
	}
}

func TestTheTableOfAllocationSites(t *testing.T) {
	assert.Equal(t, `
| allocated by | live | objects |
|---|---|---|
| podsource.annotated | 300 KiB | 10 |
| 2 others | 30 KiB | 3 |
| all | 330 KiB | 13 |
`, sitesTable([]site{{"podsource.annotated", 300 << 10, 10}, {"b", 20 << 10, 2}, {"c", 10 << 10, 1}}, 1))
}
