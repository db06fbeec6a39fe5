package apiserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/controllers/apiserver"
)

// TestStopDirectlyAfterStart stops a server whose informers and plugins have just begun to run: in
// a bubble, a goroutine that remains is a deadlock.
func TestStopDirectlyAfterStart(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Millisecond, time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			stop, err := apiserver.Start(t.Context(), new(apitest.Server), apiserver.Config{RBAC: true})
			require.NoError(t, err)
			time.Sleep(wait)
			stop()
		})
	}
}

func BenchmarkStart(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		stop, err := apiserver.Start(b.Context(), new(apitest.Server), apiserver.Config{RBAC: true})
		require.NoError(b, err)
		b.StopTimer()
		stop()
		b.StartTimer()
	}
}
