// Package broadcast sends events to all readers that there are, each of which has a bounded queue of its own:
// a reader that does not read delays nobody and takes no more memory than its queue.
package broadcast
