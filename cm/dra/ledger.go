package dra

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A ledger has the claims that may be prepared on the node. Its zero value must not be
// used. Not safe for concurrent use.
type ledger map[claimKey]*claimState

// A claimKey identifies a claim in the ledger. Claims of the same name succeed each other:
// one must be unprepared before the next is prepared.
type claimKey struct{ namespace, name string }

// A claimState is a claim and the pods that use it.
type claimState struct {
	ref     ClaimRef
	pods    map[types.UID]bool
	drivers map[string]driverState

	// allocation identifies the allocated devices: a claim can be allocated again and keep
	// its UID. "" if it is not known, in a checkpoint of a kubelet.
	allocation string
}

// A driverState is the part of a claim that one driver prepares. It is in the ledger from
// before the first call of NodePrepareResources until NodeUnprepareResources has succeeded.
type driverState struct {
	devices []Device

	// prepared: NodePrepareResources succeeded, possibly before a restart of the agent.
	// current: it succeeded since the agent started. After a reboot of the node what a
	// driver has prepared may be lost, so that a new sandbox requires a new call.
	prepared, current bool

	// NodeUnprepareResources is not called if no device needs it, or if
	// NodePrepareResources was not called. attempted: an earlier call may have reached the
	// driver.
	skipUnprepare, uncalled, attempted bool
}

func keyOf(ref ClaimRef) claimKey { return claimKey{ref.Namespace, ref.Name} }

func (s *claimState) clone() *claimState {
	if s == nil {
		return nil
	}
	c := *s
	c.pods, c.drivers = maps.Clone(s.pods), maps.Clone(s.drivers)
	return &c
}

// prepared reports whether all drivers have prepared the claim for the pod.
func (s *claimState) prepared(uid types.UID) bool {
	return s != nil && s.pods[uid] && s.allPrepared()
}

func (s *claimState) allPrepared() bool {
	for _, d := range s.drivers {
		if !d.prepared {
			return false
		}
	}
	return true
}

// conflict returns why the claim cannot be prepared while s is; nil if it can.
func (s *claimState) conflict(claim *resourceapi.ResourceClaim) error {
	switch {
	case s == nil:
		return nil
	case s.ref.UID != claim.UID:
		// Kubernetes' tests wait for the middle of this message in an event.
		return fmt.Errorf("ResourceClaim %s (%s): old ResourceClaim with same name %s and different UID %s still exists: it is not unprepared yet", s.ref, claim.UID, claim.Name, s.ref.UID)
	case s.allocation != "" && claim.Status.Allocation != nil && s.allocation != allocationID(claim):
		return fmt.Errorf("ResourceClaim %s (%s): its previous allocation is not unprepared yet", s.ref, claim.UID)
	}
	return nil
}

// allocationID returns a hash of the allocated devices.
func allocationID(claim *resourceapi.ResourceClaim) string {
	h := fnv.New64a()
	for _, r := range claim.Status.Allocation.Devices.Results {
		share := types.UID("")
		if r.ShareID != nil {
			share = *r.ShareID
		}
		fmt.Fprintf(h, "%q %q %q %q %q\n", r.Request, r.Driver, r.Pool, r.Device, share)
	}
	return strconv.FormatUint(h.Sum64(), 16)
}

// missingDrivers returns the drivers of an allocated claim that must be called before a
// sandbox with the claim is created, in order.
func (s *claimState) missingDrivers(claim *resourceapi.ResourceClaim) []string {
	var missing []string
	for name, d := range allocatedDrivers(claim) {
		if !d.skipPrepare && (s == nil || !s.drivers[name].current) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

// begin adds the pod to the claim, and the drivers that are about to be called. It returns
// those that are added and need not be called.
func (l ledger) begin(uid types.UID, claim *resourceapi.ResourceClaim) (skipped []string) {
	ref := ClaimRef{claim.Namespace, claim.Name, claim.UID}
	s := l[keyOf(ref)]
	if s == nil {
		s = &claimState{ref: ref, pods: map[types.UID]bool{}, drivers: map[string]driverState{}}
		l[keyOf(ref)] = s
	}
	s.pods[uid] = true
	s.allocation = allocationID(claim)
	for name, d := range allocatedDrivers(claim) {
		state, ok := s.drivers[name]
		if !ok && d.skipPrepare {
			state.prepared, state.current = true, true
			skipped = append(skipped, name)
		}
		state.skipUnprepare, state.uncalled = d.skipUnprepare, false
		s.drivers[name] = state
	}
	return skipped
}

// restore replaces the state of a claim. A nil state removes it.
func (l ledger) restore(key claimKey, s *claimState) {
	if s == nil {
		delete(l, key)
		return
	}
	l[key] = s
}

// setPrepared sets the devices of a driver, which replace those of an earlier call.
func (l ledger) setPrepared(ref ClaimRef, driver string, devices []Device) {
	l.change(ref, driver, func(d *driverState) { d.devices, d.prepared, d.current, d.attempted = devices, true, true, true })
}

// setFailed reports that a driver was called, and that the claim may be prepared.
func (l ledger) setFailed(ref ClaimRef, driver string) {
	l.change(ref, driver, func(d *driverState) { d.attempted = true })
}

// setUncalled reports that a driver was not called.
func (l ledger) setUncalled(ref ClaimRef, driver string) {
	l.change(ref, driver, func(d *driverState) { d.uncalled = !d.attempted })
}

func (l ledger) change(ref ClaimRef, driver string, change func(*driverState)) {
	if s := l[keyOf(ref)]; s != nil && s.ref.UID == ref.UID {
		d := s.drivers[driver]
		change(&d)
		s.drivers[driver] = d
	}
}

// claimsOf returns the keys of the pod's claims, in order.
func (l ledger) claimsOf(uid types.UID) []claimKey {
	var keys []claimKey
	for key, s := range l {
		if s.pods[uid] {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// release removes the pod from a claim, if another pod uses the claim or if no driver has
// prepared it. It otherwise returns the drivers that must unprepare it, in order; the pod
// remains until they have succeeded. skipped are the drivers that need not be called. The claim is
// not prepared from then on: a driver may have unprepared it though its response is an error.
func (l ledger) release(key claimKey, uid types.UID) (calls, skipped []string) {
	s := l[key]
	if s == nil || !s.pods[uid] {
		return nil, nil
	}
	if len(s.pods) > 1 {
		delete(s.pods, uid)
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.drivers)) {
		d := s.drivers[name]
		if d.skipUnprepare || d.uncalled {
			delete(s.drivers, name)
			if d.skipUnprepare {
				skipped = append(skipped, name)
			}
			continue
		}
		d.devices, d.prepared, d.current = nil, false, false // the response of the call may be lost
		s.drivers[name] = d
		calls = append(calls, name)
	}
	if len(calls) == 0 {
		delete(l, key)
	}
	return calls, skipped
}

// setUnprepared removes a driver from a claim, and the claim with its last driver.
func (l ledger) setUnprepared(ref ClaimRef, driver string) {
	s := l[keyOf(ref)]
	if s == nil || s.ref.UID != ref.UID {
		return
	}
	delete(s.drivers, driver)
	if len(s.drivers) == 0 {
		delete(l, keyOf(ref))
	}
}

// inUse returns the number of prepared claims, in total and by driver.
func (l ledger) inUse() (all int, byDriver map[string]int) {
	byDriver = map[string]int{}
	for _, s := range l {
		if !s.allPrepared() {
			continue
		}
		all++
		for driver := range s.drivers {
			byDriver[driver]++
		}
	}
	return all, byDriver
}

// pods returns the UIDs of all pods with claims, in order.
func (l ledger) pods() []types.UID {
	all := map[types.UID]bool{}
	for _, s := range l {
		maps.Copy(all, s.pods)
	}
	return slices.Sorted(maps.Keys(all))
}

// podsOf returns the UIDs of the pods with devices of a driver, in order.
func (l ledger) podsOf(driver string) []types.UID {
	all := map[types.UID]bool{}
	for _, s := range l {
		if d, ok := s.drivers[driver]; ok && !d.uncalled {
			maps.Copy(all, s.pods)
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// A UsedDevice is a device that a container uses through a claim.
type UsedDevice struct {
	Claim  ClaimRef
	Driver string
	Device
	resource v1.ResourceName
}

// devices returns the devices of a container in the order of its claims, drivers and the
// drivers' responses; ok is false if a claim is not prepared for the pod.
func (l ledger) devices(uid types.UID, namespace string, uses []use) (all []UsedDevice, ok bool) {
	for _, u := range uses {
		s := l[claimKey{namespace, u.claim}]
		if !s.prepared(uid) {
			return nil, false
		}
		for _, driver := range slices.Sorted(maps.Keys(s.drivers)) {
			for _, d := range s.drivers[driver].devices {
				if d.satisfies(u.request) {
					all = append(all, UsedDevice{s.ref, driver, d, u.resource})
				}
			}
		}
	}
	return all, true
}

// cdiDevices returns the CDI devices of the devices, each once.
func cdiDevices(devices []UsedDevice) []string {
	var ids []string
	for _, d := range devices {
		for _, id := range d.CDI {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
