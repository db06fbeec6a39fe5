// Package family constructs metrics together with a description, from which docs/metrics.md
// is generated.
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
	Path    string // at which it is served, such as /metrics
	Name    string
	Type    string // counter, gauge or histogram
	Help    string
	Labels  []string
	Buckets []float64

	// From is the hook that counts it, such as "pleg.Hooks.Relisted".
	From string
}

// A Set is the metrics that are served at one path. Err returns the errors of metrics that
// could not be constructed; such metrics are not served.
type Set struct {
	path     string
	registry *prometheus.Registry

	mu       sync.Mutex // guards the fields below
	families []Family
	errs     []error
}

// New returns an empty Set for a path.
func New(path string) *Set { return &Set{path: path, registry: prometheus.NewRegistry()} }

// Gatherer returns the gatherer of the Set.
func (s *Set) Gatherer() prometheus.Gatherer { return s.registry }

// Registerer returns the registry, for collectors without a description.
func (s *Set) Registerer() prometheus.Registerer { return s.registry }

// Err returns the errors of metrics that could not be constructed.
func (s *Set) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// Families returns the descriptions in the order of construction.
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

// Desc describes a family of a collector.
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

// Counter returns a counter.
func (s *Set) Counter(from, name, help string) prometheus.Counter {
	return s.Counters(from, name, help).WithLabelValues()
}

// Counters returns a counter with labels.
func (s *Set) Counters(from, name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	s.note(Family{Name: name, Type: "counter", Help: help, Labels: labels, From: from})
	s.Add(v)
	return v
}

// Gauge returns a gauge.
func (s *Set) Gauge(from, name, help string) prometheus.Gauge {
	return s.Gauges(from, name, help).WithLabelValues()
}

// Gauges returns a gauge with labels.
func (s *Set) Gauges(from, name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	s.note(Family{Name: name, Type: "gauge", Help: help, Labels: labels, From: from})
	s.Add(v)
	return v
}

// Histogram returns a histogram. Nil buckets are those of the Prometheus library.
func (s *Set) Histogram(from, name, help string, buckets []float64) prometheus.Observer {
	return s.Histograms(from, name, help, buckets).WithLabelValues()
}

// Histograms returns a histogram with labels.
func (s *Set) Histograms(from, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	if buckets == nil {
		buckets = prometheus.DefBuckets
	}
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	s.note(Family{Name: name, Type: "histogram", Help: help, Labels: labels, Buckets: buckets, From: from})
	s.Add(v)
	return v
}
