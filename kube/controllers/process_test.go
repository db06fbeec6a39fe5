package controllers

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
)

func TestStaleCachesAreNotLoggedAsErrors(t *testing.T) {
	var log bytes.Buffer
	handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})
	ctx := klog.NewContext(t.Context(), logr.FromSlogHandler(handler))
	stale := &consistency.ConsistencyError{ReadRV: "1", WroteRV: "2", GroupResource: schema.GroupResource{Resource: "pods"}}

	runtime.HandleErrorWithContext(ctx, stale, "Sync failed")
	runtime.HandleErrorWithContext(ctx, fmt.Errorf("sync %q failed with %v", "default/web", stale), "Unhandled Error")
	require.NotContains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "Cache is stale; retrying")

	runtime.HandleErrorWithContext(ctx, errors.New("no permission"), "Sync failed")
	runtime.HandleErrorWithContext(ctx, nil, "No error")
	require.Contains(t, log.String(), `level=ERROR msg="Sync failed"`)
	require.Contains(t, log.String(), `level=ERROR msg="No error"`)
}
