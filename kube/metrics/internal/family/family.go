// Package family makes metrics, and remembers what they are, so that a table of
// them can be made from the code.
package family

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// A Family is all series of one name.
type Family struct {
	Path    string // it is served at: /metrics
	Name    string
	Type    string // counter, gauge or histogram
	Help    string
	Labels  []string
	Buckets []float64

	// From says which hook it comes from: "pleg.Hooks.Relisted".
	From string
}

// A Set is the families that are served at one path. What can't be made is told by
// Err; the metric that is returned then counts for nobody.
type Set struct {
	path     string
	registry *prometheus.Registry

	mu       sync.Mutex // guards the fields below
	families []Family
	errs     []error
}

// New returns an empty Set for a path.
func New(path string) *Set { return &Set{path: path, registry: prometheus.NewRegistry()} }

// Gatherer returns what the Set has counted.
func (s *Set) Gatherer() prometheus.Gatherer { return s.registry }

// Registerer takes collectors of others. What they collect is in no table.
func (s *Set) Registerer() prometheus.Registerer { return s.registry }

// Err joins what could not be made.
func (s *Set) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// Families returns what was made, in its order.
func (s *Set) Families() []Family {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.families)
}

// Add registers a collector of families that were declared with Desc.
func (s *Set) Add(c prometheus.Collector) {
	if err := s.registry.Register(c); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.errs = append(s.errs, fmt.Errorf("metrics: %w", err))
	}
}

// Desc declares a family of a collector of its own.
func (s *Set) Desc(from, name, typ, help string, labels ...string) *prometheus.Desc {
	s.note(Family{Name: name, Type: typ, Help: help, Labels: labels, From: from})
	return prometheus.NewDesc(name, help, labels, nil)
}

func (s *Set) note(f Family) {
	f.Path = s.path
	s.mu.Lock()
	defer s.mu.Unlock()
	s.families = append(s.families, f)
}

// Counter makes a counter.
func (s *Set) Counter(from, name, help string) prometheus.Counter {
	return s.Counters(from, name, help).WithLabelValues()
}

// Counters makes a counter with labels.
func (s *Set) Counters(from, name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	s.note(Family{Name: name, Type: "counter", Help: help, Labels: labels, From: from})
	s.Add(v)
	return v
}

// Gauge makes a gauge.
func (s *Set) Gauge(from, name, help string) prometheus.Gauge {
	return s.Gauges(from, name, help).WithLabelValues()
}

// Gauges makes a gauge with labels.
func (s *Set) Gauges(from, name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	s.note(Family{Name: name, Type: "gauge", Help: help, Labels: labels, From: from})
	s.Add(v)
	return v
}

// Histogram makes a histogram. Nil buckets are those of the Prometheus library.
func (s *Set) Histogram(from, name, help string, buckets []float64) prometheus.Observer {
	return s.Histograms(from, name, help, buckets).WithLabelValues()
}

// Histograms makes a histogram with labels.
func (s *Set) Histograms(from, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	if buckets == nil {
		buckets = prometheus.DefBuckets
	}
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	s.note(Family{Name: name, Type: "histogram", Help: help, Labels: labels, Buckets: buckets, From: from})
	s.Add(v)
	return v
}
