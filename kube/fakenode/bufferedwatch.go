package fakenode

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// A bufferedWatch is a watch with an unlimited buffer and with copies of the objects.
type bufferedWatch struct {
	source   watch.Interface
	buffered chan watch.Event
	out      chan watch.Event
	stopped  chan struct{}
	once     sync.Once
}

// buffered returns a watch of the events of source that keep accepts. keep may block.
func buffered(source watch.Interface, keep func(watch.Event) bool) *bufferedWatch {
	w := &bufferedWatch{source: source, buffered: make(chan watch.Event), out: make(chan watch.Event), stopped: make(chan struct{})}
	go w.buffer()
	go w.forward(keep)
	return w
}

// ResultChan implements watch.Interface.
func (w *bufferedWatch) ResultChan() <-chan watch.Event { return w.out }

// Stop implements watch.Interface.
func (w *bufferedWatch) Stop() {
	w.once.Do(func() {
		close(w.stopped)
		w.source.Stop()
	})
}

// buffer receives the events of the source.
func (w *bufferedWatch) buffer() {
	defer close(w.buffered)
	var queue []watch.Event
	source := w.source.ResultChan()
	for source != nil || len(queue) > 0 {
		var to chan watch.Event
		var next watch.Event
		if len(queue) > 0 {
			to, next = w.buffered, queue[0]
		}
		select {
		case <-w.stopped:
			return
		case e, ok := <-source:
			if ok {
				queue = append(queue, e)
			} else {
				source = nil
			}
		case to <- next:
			queue = queue[1:]
		}
	}
}

// forward sends the events that keep accepts.
func (w *bufferedWatch) forward(keep func(watch.Event) bool) {
	defer close(w.out)
	for e := range w.buffered {
		if e.Object != nil {
			e.Object = e.Object.DeepCopyObject()
		}
		if !keep(e) {
			continue
		}
		select {
		case <-w.stopped:
			return
		case w.out <- e:
		}
	}
}
