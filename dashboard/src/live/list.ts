// A list that is kept by the messages of one subscription.
import type { Status } from '../api/types';
import type { Message } from './protocol';

/** LiveState is what a page sees of a list. */
export interface LiveState<T> {
  items: T[];
  /** Whether the list is complete. It stays so while it is read anew. */
  complete: boolean;
  error?: Status;
}

interface Keyed {
  uid?: string;
  metadata?: { uid?: string };
}

/** uidOf tells objects and rows apart. */
export const uidOf = (item: unknown) => (item as Keyed).uid ?? (item as Keyed).metadata?.uid ?? '';

/**
 * LiveList takes messages in. What is shown changes only by what is heard: a list that begins anew keeps what it has
 * until the new one is complete, so nothing flickers after a loss.
 */
export class LiveList<T> {
  /** The version to go on from after a loss; empty before the list is complete. */
  resourceVersion = '';

  private readonly items = new Map<string, T>();
  private seen: Set<string> | undefined;
  private complete = false;
  private error: Status | undefined;
  private shown: LiveState<T> | undefined;

  /** state is the same object until something changes. */
  state(): LiveState<T> {
    this.shown ??= { items: [...this.items.values()], complete: this.complete, error: this.error };
    return this.shown;
  }

  receive(message: Exclude<Message, { type: 'pong' | 'hello' }>) {
    switch (message.type) {
      case 'snapshot':
        this.takeSnapshot(message.items as T[], message.first ?? false);
        break;
      case 'sync':
        this.finish(message.resourceVersion);
        break;
      case 'added':
      case 'changed':
        this.put(message.item as T);
        this.advance(message.resourceVersion);
        break;
      case 'deleted':
        this.items.delete(message.item.uid);
        this.advance(message.resourceVersion);
        break;
      case 'error':
        this.error = message.error;
        break;
    }
    this.shown = undefined;
  }

  private takeSnapshot(items: T[], first: boolean) {
    if (first) {
      this.seen = new Set();
      this.resourceVersion = '';
    }
    items.forEach((item) => this.put(item));
  }

  private put(item: T) {
    const uid = uidOf(item);
    this.seen?.add(uid);
    this.items.set(uid, item);
  }

  private finish(resourceVersion: string) {
    if (this.seen) {
      for (const uid of this.items.keys()) {
        if (!this.seen.has(uid)) this.items.delete(uid);
      }
    }
    this.seen = undefined;
    this.complete = true;
    this.error = undefined;
    this.resourceVersion = resourceVersion;
  }

  // Versions between the parts of a list are not one to go on from.
  private advance(resourceVersion: string) {
    if (this.complete && !this.seen && resourceVersion) this.resourceVersion = resourceVersion;
  }
}
