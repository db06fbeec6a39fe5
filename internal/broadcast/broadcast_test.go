package broadcast_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/broadcast"
)

func ExampleSender() {
	var s broadcast.Sender[string]
	s.Send("no reader")
	r := s.Open(2)
	defer r.Close()
	s.Send("created")
	s.Send("started")
	<-r.More()
	fmt.Println(r.Take())
	for range 3 {
		s.Send("too many")
	}
	fmt.Println(r.Take())
	// Output:
	// [created started] false
	// [] true
}

func TestEachReaderHasAllEventsInOrder(t *testing.T) {
	const n = 1000
	var s broadcast.Sender[int]
	var want []int
	for i := range n {
		want = append(want, i)
	}
	var group sync.WaitGroup
	for range 3 {
		r := s.Open(n)
		group.Go(func() {
			defer r.Close()
			var got []int
			for len(got) < n {
				<-r.More()
				events, late := r.Take()
				assert.False(t, late)
				got = append(got, events...)
			}
			assert.Equal(t, want, got)
		})
	}
	for i := range n {
		s.Send(i)
	}
	group.Wait()
	assert.False(t, s.HasReaders())
}

func TestALateReaderDelaysNoOtherOne(t *testing.T) {
	var s broadcast.Sender[int]
	slow, fast := s.Open(1), s.Open(1)
	for i := range 3 {
		s.Send(i)
		events, late := fast.Take()
		assert.Equal(t, []int{i}, events)
		assert.False(t, late)
	}
	<-slow.More()
	events, late := slow.Take()
	assert.Empty(t, events, "a part of them would look complete")
	assert.True(t, late)
	slow.Close()
	assert.True(t, s.HasReaders())
	fast.Close()
	s.Send(3)
	events, _ = fast.Take()
	assert.Empty(t, events)
	assert.False(t, s.HasReaders())
}
