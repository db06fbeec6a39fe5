package csi_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kubeparts/kubeparts/volume/csi"
)

// A limits is the limits that the plugin has reported.
type limits struct {
	mu       sync.Mutex
	reported []int64
	fail     error // of the next report
	*api
}

func (l *limits) DriverRegistered(_ context.Context, d csi.Driver) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fail; err != nil {
		l.fail = nil
		return err
	}
	l.reported = append(l.reported, d.MaxVolumes)
	return nil
}

func (l *limits) list() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]int64(nil), l.reported...)
}

// limited returns a plugin that runs, whose driver has an update period in seconds.
func limited(t *testing.T, seconds *int64) (*world, *limits) {
	t.Helper()
	l := &limits{api: &api{driver: &storagev1.CSIDriverSpec{
		AttachRequired: ptr(false), NodeAllocatableUpdatePeriodSeconds: seconds,
		VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral},
	}}}
	w := newWorld(t, csi.Config{Drivers: l})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, w.Run(ctx)) })
	t.Cleanup(func() { stop(); wg.Wait() })
	return w, l
}

// vol-84
func TestTheLimitOfADriverIsUpdatedPeriodically(t *testing.T) {
	w, l := limited(t, ptr[int64](1))
	time.Sleep(1500 * time.Millisecond)
	assert.Equal(t, []int64{0}, l.list(), "a limit that has not changed is not reported")
	l.mu.Lock()
	l.fail = errors.New("conflict")
	l.mu.Unlock()
	w.driver.SetMaxVolumes(7)
	require.Eventually(t, func() bool { return len(l.list()) == 2 }, time.Minute, 10*time.Millisecond, "the update is retried")
	assert.Equal(t, []int64{0, 7}, l.list())
	require.Eventually(t, func() bool { return w.Drivers()[driverName].MaxVolumes == 7 }, time.Minute, time.Millisecond)
	w.Deregister(t.Context(), driverName)
	w.driver.SetMaxVolumes(8)
	time.Sleep(1500 * time.Millisecond)
	assert.Len(t, l.list(), 2)
	require.EqualError(t, w.Run(t.Context()), "csi: Plugin.Run was called before")
}

func TestAnExhaustedDriverIsUpdatedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		period *int64
		code   codes.Code
		want   []int64
	}{
		"exhausted":     {ptr[int64](3600), codes.ResourceExhausted, []int64{0, 1}},
		"another error": {ptr[int64](3600), codes.Internal, []int64{0}},
		"no period":     {nil, codes.ResourceExhausted, []int64{0}},
	} {
		t.Run(name, func(t *testing.T) {
			w, l := limited(t, c.period)
			w.driver.SetMaxVolumes(1)
			w.driver.Fail("NodePublishVolume", status.Error(c.code, "no more volumes"))
			_, err := w.SetUp(t.Context(), w.request(t, inline()))
			require.ErrorContains(t, err, "no more volumes")
			if len(c.want) == 2 {
				require.Eventually(t, func() bool { return len(l.list()) == 2 }, time.Minute, time.Millisecond)
			} else {
				time.Sleep(100 * time.Millisecond)
			}
			assert.Equal(t, c.want, l.list())
		})
	}
}

// vol-85: only an attach error with the code ResourceExhausted, of a driver with an update period, means
// that the node can attach no more volumes; the limit is then updated at once.
func TestTheAttachLimitOfADriver(t *testing.T) {
	hour, exhausted, internal := ptr[int64](3600), ptr(int32(codes.ResourceExhausted)), ptr(int32(codes.Internal))
	failed := func(code *int32) *storagev1.VolumeAttachmentStatus {
		return &storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Message: "no slot", ErrorCode: code}}
	}
	for name, c := range map[string]struct {
		period *int64
		status *storagev1.VolumeAttachmentStatus // nil: there is no attachment
		err    error                             // of the API server
		want   bool
	}{
		"exhausted":     {period: hour, status: failed(exhausted), want: true},
		"another error": {period: hour, status: failed(internal)},
		"no code":       {period: hour, status: failed(nil)},
		"no error":      {period: hour, status: new(storagev1.VolumeAttachmentStatus)},
		"attached":      {period: hour, status: &storagev1.VolumeAttachmentStatus{Attached: true, AttachError: failed(exhausted).AttachError}},
		"no attachment": {period: hour},
		"no period":     {status: failed(exhausted)},
		"no answer":     {period: hour, err: errors.New("no server")},
	} {
		t.Run(name, func(t *testing.T) {
			w, l := limited(t, c.period)
			l.api.err = c.err
			s := persistent("vol-1")
			if c.status != nil {
				l.api.attachments = map[string]*storagev1.VolumeAttachment{fmt.Sprintf("csi-%x", sha256.Sum256([]byte("vol-1"+driverName+"node-1"))): {Status: *c.status}}
			}
			w.driver.SetMaxVolumes(1)
			exceeded, err := w.AttachLimitExceeded(t.Context(), s)
			if c.err != nil {
				require.ErrorContains(t, err, "no server")
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, c.want, exceeded)
			if c.want {
				require.Eventually(t, func() bool { return len(l.list()) == 2 }, time.Minute, time.Millisecond)
				assert.Equal(t, []int64{0, 1}, l.list())
			}
		})
	}
	w, _ := limited(t, hour)
	exceeded, err := w.AttachLimitExceeded(t.Context(), inline())
	require.NoError(t, err)
	assert.False(t, exceeded, "inline volumes are not attached")
}
