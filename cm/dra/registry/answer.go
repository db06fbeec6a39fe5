package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/logs"
)

// maxError is the maximum length of an error of a driver in bytes. Events contain it.
const maxError = 1024

// driverError returns the error of a driver for one claim; nil if s is empty.
func driverError(s string) error {
	if s == "" {
		return nil
	}
	return errors.New(shortened(s))
}

func shortened(s string) string {
	if len(s) > maxError {
		s = s[:maxError] + "..."
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}

// checkUIDs returns an error if a driver has returned a result for a claim that it was not
// called for: its results cannot be attributed to claims then.
func checkUIDs[V any](claims []dra.ClaimRef, results map[string]V) error {
	for _, uid := range slices.Sorted(maps.Keys(results)) {
		if !slices.ContainsFunc(claims, func(ref dra.ClaimRef) bool { return string(ref.UID) == uid }) {
			return fmt.Errorf("driver returned a result for unknown claim UID %q", logs.Text(uid, maxShown))
		}
	}
	return nil
}

// preparedOf returns the results of NodePrepareResources. A claim whose devices are invalid
// is not prepared; one without a result is missing.
func preparedOf(claims []dra.ClaimRef, results map[string]*drav1.NodePrepareResourceResponse) (map[types.UID]dra.Prepared, error) {
	if err := checkUIDs(claims, results); err != nil {
		return nil, err
	}
	out := map[types.UID]dra.Prepared{}
	for uid, r := range results {
		p := dra.Prepared{Err: driverError(r.GetError())}
		if p.Err == nil {
			p.Devices, p.Err = devicesOf(r.GetDevices())
		}
		out[types.UID(uid)] = p
	}
	return out, nil
}

func devicesOf(in []*drav1.Device) ([]dra.Device, error) {
	if len(in) > maxDevices { // before they are copied
		return nil, fmt.Errorf("%d devices, the limit is %d", len(in), maxDevices)
	}
	var devices []dra.Device
	for _, d := range in {
		devices = append(devices, dra.Device{
			Pool: d.GetPoolName(), Name: d.GetDeviceName(), Requests: d.GetRequestNames(), CDI: d.GetCdiDeviceIds(), ShareID: d.GetShareId(),
		})
	}
	if err := checkDevices(devices); err != nil {
		return nil, err
	}
	return devices, nil
}

// unpreparedOf returns the results of NodeUnprepareResources.
func unpreparedOf(claims []dra.ClaimRef, results map[string]*drav1.NodeUnprepareResourceResponse) (map[types.UID]error, error) {
	if err := checkUIDs(claims, results); err != nil {
		return nil, err
	}
	out := map[types.UID]error{}
	for uid, r := range results {
		out[types.UID(uid)] = driverError(r.GetError())
	}
	return out, nil
}
