package hollow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// A Shard is the membership of a process in a group of processes that share the nodes.
//
// Each process has a Lease. Each node is run by one of the processes whose leases are renewed.
// When a process joins, ends or dies, the others first stop the nodes that they do not run any
// longer, publish which processes they have observed, and start nodes only when all processes
// have published the same: no node is run by two processes.
type Shard struct {
	// Group is the name of the group. If empty, the process runs all nodes.
	Group string

	// Namespace is the namespace of the leases. Required with Group.
	Namespace string

	// Identity is unique in the group, such as the name of a pod: the name of the lease is the
	// group, "-", and Identity. Required with Group.
	Identity string

	// Duration is the time after the last renewal of a lease until the nodes of its process are
	// run by others. A process that cannot renew its lease stops its nodes after two thirds of
	// it. Whole seconds, at least 3s. Zero: 10s.
	Duration time.Duration
}

// Names of the labels and annotations of leases.
const (
	groupLabel        = "hollow.kubeparts.io/group"
	membersAnnotation = "hollow.kubeparts.io/members" // the view of the process
)

func (s *Shard) complete() error {
	if s.Group == "" {
		return nil
	}
	if s.Duration == 0 {
		s.Duration = 10 * time.Second
	}
	switch {
	case s.Namespace == "":
		return errors.New("hollow: Config.Shard.Namespace is empty")
	case s.Identity == "":
		return errors.New("hollow: Config.Shard.Identity is empty")
	case len(validation.IsDNS1123Subdomain(s.lease())) > 0:
		return fmt.Errorf("hollow: Config.Shard: %q is not the name of a lease", s.lease())
	case len(validation.IsValidLabelValue(s.Group)) > 0:
		return fmt.Errorf("hollow: Config.Shard.Group: %q is not the value of a label", s.Group)
	case s.Duration < 3*time.Second || s.Duration%time.Second != 0:
		return errors.New("hollow: Config.Shard.Duration is less than 3s or not in whole seconds")
	}
	return nil
}

// lease returns the name of the lease.
func (s *Shard) lease() string { return s.Group + "-" + s.Identity }

// The period at which leases are read is a tenth of their duration, and that of renewals a
// fourth.
const (
	readsPerDuration    = 10
	renewalsPerDuration = 4
)

// shards decides which nodes this process runs.
type shards struct {
	cfg      Shard
	leases   coordinationclient.LeaseInterface
	log      *slog.Logger
	reassess func(context.Context) // stops and starts nodes as runs reports

	// Used by run only.
	own       *coordinationv1.Lease
	renewed   time.Time // begin of the last successful renewal
	view      view      // as last observed
	published view      // the view in the lease: the nodes that it assigns to others have stopped
	settled   bool      // all processes have published view
	members   map[string]*member
	joined    bool // the lease was written once

	mu    sync.Mutex // guards the field below
	views []view     // the last view that was settled, and those since
}

// A member is a process as observed by its lease.
type member struct {
	renewed metav1.MicroTime
	at      time.Time // when renewed was observed, by the clock of this process
}

func newShards(cfg Shard, leases coordinationclient.LeaseInterface, log *slog.Logger) *shards {
	return &shards{cfg: cfg, leases: leases, log: log, members: map[string]*member{}, views: []view{nil}}
}

// runs reports whether this process runs a node: in all views since the last settled one.
func (s *shards) runs(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.views {
		if v.owner(node) != s.cfg.Identity {
			return false
		}
	}
	return true
}

func (s *shards) setViews(change func([]view) []view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.views = change(s.views)
}

// run maintains the lease and the view until ctx is done. The caller must stop all nodes before
// it calls leave. It returns an error if another process has the same identity.
func (s *shards) run(ctx context.Context) error {
	for {
		if err := s.step(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.cfg.Duration / readsPerDuration):
		}
	}
}

// step renews the lease, reads those of the others, and changes the view.
func (s *shards) step(ctx context.Context) error {
	if time.Since(s.renewed) >= s.cfg.Duration/renewalsPerDuration {
		if err := s.renew(ctx); err != nil {
			return err
		}
	}
	if s.joined && time.Since(s.renewed) >= s.cfg.Duration*2/3 {
		s.expire(ctx)
		return nil
	}
	list, err := s.list(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("Failed to read the leases of the group; will retry", "group", s.cfg.Group, "err", err)
		}
		return nil
	}
	live := s.live(ctx, list)
	if !slices.Contains(live, s.cfg.Identity) { // not joined, or its lease was deleted
		return nil
	}
	if !live.equal(s.view) {
		s.log.Info("Members of the group changed", "group", s.cfg.Group, "members", live.text())
		s.view, s.settled = live, false
		s.setViews(func(views []view) []view { return append(views, live) })
		if err := s.apply(ctx); err != nil {
			return err
		}
		s.published = live
		return s.renew(ctx)
	}
	if !s.settled && s.agreed(list) {
		s.settled = true
		s.setViews(func([]view) []view { return []view{live} })
		return s.apply(ctx)
	}
	return nil
}

// apply stops and starts nodes. It renews the lease meanwhile, since stopping nodes waits for
// their requests.
func (s *shards) apply(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.reassess(ctx)
	}()
	for {
		select {
		case <-done:
			return nil
		case <-time.After(s.cfg.Duration / renewalsPerDuration):
			if err := s.renew(ctx); err != nil {
				<-done
				return err
			}
		}
	}
}

// expire stops all nodes, since the lease could not be renewed in time.
func (s *shards) expire(ctx context.Context) {
	if s.view == nil {
		return
	}
	s.log.Error("Failed to renew the lease of this process in time; its nodes are stopped", "lease", s.cfg.lease())
	s.view, s.published, s.settled = nil, nil, false
	s.setViews(func([]view) []view { return []view{nil} })
	s.reassess(ctx)
}

// list returns the leases of the group by the identity of the process.
func (s *shards) list(ctx context.Context) (map[string]*coordinationv1.Lease, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	list, err := s.leases.List(ctx, metav1.ListOptions{LabelSelector: groupLabel + "=" + s.cfg.Group})
	if err != nil {
		return nil, err
	}
	out := map[string]*coordinationv1.Lease{}
	for i := range list.Items {
		if l := &list.Items[i]; l.Spec.HolderIdentity != nil && l.Spec.RenewTime != nil {
			out[*l.Spec.HolderIdentity] = l
		}
	}
	return out, nil
}

// live returns the processes whose leases are renewed. A lease that was first observed counts
// as renewed at this time, since the clocks of two machines may differ.
func (s *shards) live(ctx context.Context, list map[string]*coordinationv1.Lease) view {
	maps.DeleteFunc(s.members, func(identity string, _ *member) bool { return list[identity] == nil })
	var out view
	for identity, l := range list {
		m := s.members[identity]
		if m == nil {
			m = &member{}
			s.members[identity] = m
		}
		if !l.Spec.RenewTime.Equal(&m.renewed) {
			m.renewed, m.at = *l.Spec.RenewTime, time.Now()
		}
		switch age := time.Since(m.at); {
		case age < s.cfg.Duration:
			out = append(out, identity)
		case age >= 2*s.cfg.Duration:
			s.remove(ctx, l)
		}
	}
	slices.Sort(out)
	return out
}

// remove deletes the lease of a process that has died.
func (s *shards) remove(ctx context.Context, l *coordinationv1.Lease) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	err := s.leases.Delete(ctx, l.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		s.log.Warn("Failed to delete the lease of a process that has died; will retry", "lease", l.Name, "err", err)
	}
}

// agreed reports whether all processes of the view have published it.
func (s *shards) agreed(list map[string]*coordinationv1.Lease) bool {
	return !slices.ContainsFunc(s.view, func(identity string) bool {
		return list[identity].Annotations[membersAnnotation] != s.view.text()
	})
}

// renew writes the lease with the view, and creates it if it does not exist. It returns an
// error if another process writes it.
func (s *shards) renew(parent context.Context) error {
	ctx, cancel := s.call(parent)
	defer cancel()
	began := time.Now()
	now, err := s.write(ctx)
	switch {
	case err == nil:
		s.own, s.renewed, s.joined = now, began, true
	case parent.Err() != nil:
	case apierrors.IsNotFound(err):
		s.own = nil // it is created at the next step
	case apierrors.IsConflict(err):
		return fmt.Errorf("hollow: lease %s/%s was written by another process; Config.Shard.Identity must be unique", s.cfg.Namespace, s.cfg.lease())
	default:
		s.log.Warn("Failed to renew the lease of this process; will retry", "lease", s.cfg.lease(), "err", err)
	}
	return nil
}

func (s *shards) write(ctx context.Context) (*coordinationv1.Lease, error) {
	if s.own == nil {
		is, err := s.leases.Get(ctx, s.cfg.lease(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return s.leases.Create(ctx, s.draft(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: s.cfg.lease()}}), metav1.CreateOptions{})
		}
		if err != nil {
			return nil, err
		}
		s.own = is // of a process that had this identity before
	}
	return s.leases.Update(ctx, s.draft(s.own), metav1.UpdateOptions{})
}

// draft returns the lease as it is written.
func (s *shards) draft(is *coordinationv1.Lease) *coordinationv1.Lease {
	l := is.DeepCopy()
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Labels[groupLabel], l.Annotations[membersAnnotation] = s.cfg.Group, s.published.text()
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &s.cfg.Identity, new(int32(s.cfg.Duration/time.Second))
	l.Spec.RenewTime = new(metav1.NowMicro())
	return l
}

// leave deletes the lease, so that others run the nodes at once.
func (s *shards) leave(ctx context.Context) error {
	if s.own == nil {
		return nil
	}
	ctx, cancel := s.call(ctx)
	defer cancel()
	err := s.leases.Delete(ctx, s.cfg.lease(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.own.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("hollow: release lease %s/%s: %w", s.cfg.Namespace, s.cfg.lease(), err)
	}
	return nil
}

// call bounds a request, so that a lease that cannot be renewed is noticed in time.
func (s *shards) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.Duration/6)
}
