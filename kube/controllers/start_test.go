package controllers_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/controllers"
)

// A recorder is a test that fails without stopping.
type recorder struct {
	testing.TB
	fatal string
}

func (r *recorder) Fatalf(format string, args ...any) { r.fatal = fmt.Sprintf(format, args...) }

func TestStartNamesTheResourceThatIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apitest.Server{Fault: func(c apitest.Call) (f apitest.Fault) {
			if c.Resource == "daemonsets" {
				f.Code = http.StatusForbidden
			}
			return f
		}}
		r := &recorder{TB: t}
		begun := time.Now()
		stop := controllers.Start(t.Context(), r, api.RESTConfig(), controllers.Config{})
		require.Contains(t, r.fatal, "DaemonSet")
		require.Contains(t, r.fatal, "timeout after 1m0s")
		require.Equal(t, time.Minute, time.Since(begun))
		stop()
		stop() // no effect
	})
}

func TestStartReportsAnInvalidConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		stop := controllers.Start(t.Context(), r, new(apitest.Server).RESTConfig(), controllers.Config{Controllers: []string{"cron"}})
		require.Contains(t, r.fatal, `unknown controller "cron"`)
		stop()
	})
}

// The bubble ends without a goroutine.
func TestControllersStopWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- controllers.Run(ctx, new(apitest.Server).RESTConfig(), controllers.Config{Scheduler: true})
		}()
		time.Sleep(time.Hour)
		cancel()
		begun := time.Now()
		require.NoError(t, <-ended)
		require.Less(t, time.Since(begun), 10*time.Second)
	})
}

// Tests in one process are independent, although they share metrics.
func TestControllersOfParallelTests(t *testing.T) {
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			inCluster(t, 1, controllers.Config{Scheduler: true}, func(t *testing.T, c *cluster) {
				c.deploy("web", int32(i+1), template("web", "web:1", ""))
				c.after(time.Minute)
				require.Equal(t, int32(i+1), c.deployment("web").Status.AvailableReplicas)
			})
		})
	}
}

func TestTheLogOfTheControllersGoesToTheLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil)) // serializes its writes
		ctx, cancel := context.WithCancel(t.Context())
		stop := controllers.Start(ctx, t, new(apitest.Server).RESTConfig(), controllers.Config{Controllers: []string{"job"}, Logger: logger})
		cancel()
		stop()
		require.Contains(t, log.String(), "Starting job controller")
	})
}
