// Package broadcast sends events to all readers that there are, each of which has a bounded queue of its own:
// a reader that does not read delays no other one, and needs no more memory than its queue.
package broadcast
