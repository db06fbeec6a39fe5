package registry

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"

	"github.com/kubeparts/kubeparts/logs"
)

const (
	// defaultHealthTimeout is the time after which the health of a device is unknown,
	// unless the driver specifies another.
	defaultHealthTimeout = 30 * time.Second

	// maxHealthTimeout is the maximum that a driver can specify.
	maxHealthTimeout = 24 * time.Hour

	// maxReported is the maximum number of devices of a driver whose health is stored.
	maxReported = 10_000

	// maxHealthMessage is the maximum number of characters of a message; a longer one ends
	// with "...".
	maxHealthMessage = 1024
)

// A deviceKey identifies a device of a driver.
type deviceKey struct{ pool, device string }

// A deviceReport is the health of a device as a driver reports it.
type deviceReport struct {
	deviceKey
	status  v1.ResourceHealthStatus
	message string
	timeout time.Duration // after which it is unknown
}

// reportOf returns the report of a driver; values outside of the protocol count as its
// defaults.
func reportOf(d *healthv1.DeviceHealth) deviceReport {
	r := deviceReport{
		deviceKey: deviceKey{d.GetDevice().GetPoolName(), d.GetDevice().GetDeviceName()},
		status:    v1.ResourceHealthStatusUnknown, timeout: defaultHealthTimeout,
	}
	switch d.GetHealth() {
	case healthv1.HealthStatus_HEALTHY:
		r.status = v1.ResourceHealthStatusHealthy
	case healthv1.HealthStatus_UNHEALTHY:
		r.status = v1.ResourceHealthStatusUnhealthy
	}
	if s := d.GetHealthCheckTimeoutSeconds(); s > 0 {
		r.timeout = time.Duration(min(s, int64(maxHealthTimeout/time.Second))) * time.Second
	}
	r.message = strings.ToValidUTF8(d.GetMessage(), string(utf8.RuneError))
	if utf8.RuneCountInString(r.message) > maxHealthMessage {
		r.message = string([]rune(r.message)[:maxHealthMessage-3]) + "..."
	}
	return r
}

// reportsOf returns the reports of a message of the stream.
func reportsOf(in []*healthv1.DeviceHealth) ([]deviceReport, error) {
	if len(in) > maxReported {
		return nil, fmt.Errorf("health of %d devices, the limit is %d", len(in), maxReported)
	}
	var list []deviceReport
	for _, d := range in {
		r := reportOf(d)
		if r.pool == "" || r.device == "" || len(r.pool) > maxName || len(r.device) > maxName {
			return nil, fmt.Errorf("health of device %q in pool %q: invalid name", logs.Text(r.device, maxShown), logs.Text(r.pool, maxShown))
		}
		list = append(list, r)
	}
	return list, nil
}

// healthCache has the last reports of a driver. A nil cache is empty.
type healthCache map[deviceKey]storedReport

type storedReport struct {
	deviceReport
	expires time.Time
}

// update stores reports and reports whether the health of a device changed. Devices that
// are not in the list keep their health until it expires. The number of devices is limited:
// further ones are unknown.
func (c healthCache) update(now time.Time, list []deviceReport) (changed bool) {
	for _, r := range list {
		old, ok := c[r.deviceKey]
		if !ok && len(c) >= maxReported {
			continue
		}
		changed = changed || !ok || old.status != r.status || old.message != r.message
		c[r.deviceKey] = storedReport{r, now.Add(r.timeout)}
	}
	return changed
}

// expire removes the reports that are due and returns when the next one is; zero if there
// is none.
func (c healthCache) expire(now time.Time) (changed bool, next time.Time) {
	for key, r := range c {
		switch {
		case !r.expires.After(now):
			delete(c, key)
			changed = true
		case next.IsZero() || r.expires.Before(next):
			next = r.expires
		}
	}
	return changed, next
}

// get returns the health of a device.
func (c healthCache) get(pool, device string) (status v1.ResourceHealthStatus, message string) {
	r, ok := c[deviceKey{pool, device}]
	if !ok {
		return v1.ResourceHealthStatusUnknown, ""
	}
	return r.status, r.message
}
